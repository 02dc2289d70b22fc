# SPDX-License-Identifier: Apache-2.0
# Usage: zsh -f complete.zsh SCRIPT LINE...
# Types each LINE and a tab into an interactive zsh that has sourced SCRIPT, and prints the line
# that is then in the editor.
zmodload zsh/zpty || exit 2
home=$(mktemp -d) || exit 2
trap 'zpty -d shell 2>/dev/null; rm -rf $home' EXIT

cat > $home/setup <<END
autoload -Uz compinit && compinit -u -d $home/dump
source ${(q)1}
tell() { print -r -- "\$BUFFER" > $home/line.new && mv $home/line.new $home/line }
zle -N tell
bindkey '^T' tell
PROMPT=
: > $home/ready
END
shift

# What the shell shows is read and dropped: it would wait when nobody took it.
wait_for() {
    local shown
    repeat 1200; do
        while zpty -r -t shell shown; do :; done
        [[ -e $1 ]] && return
        sleep 0.05
    done
    print -u2 "complete.zsh: the shell does not answer"
    exit 2
}

TERM=dumb zpty -b shell zsh -f -i
zpty -w shell "source $home/setup"
wait_for $home/ready
for line; do
    zpty -n -w shell $'\x15'"$line"$'\t\x14'
    wait_for $home/line
    cat $home/line
    rm $home/line
done
