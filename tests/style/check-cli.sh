#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Holds the program to what its rows promise: documents, help, manual pages and completion agree
# with the code, and the streams are treated as scripts expect. Prints TAP.
# Usage: check-cli.sh MYELIN SOURCE_ROOT
set -u
myelin=$(realpath "$1") root=$(realpath "$2") n=0 failures=0
[[ -x $myelin ]] || { echo "Bail out! $1 is no program"; exit 2; }
scratch=$(mktemp -d) && cd "$scratch" || exit 2
trap 'rm -rf -- "$scratch"' EXIT
unset NO_COLOR

# law SENTENCE FUNCTION: the function calls fail for each breach.
law() {
    local before=$failures
    n=$((n + 1))
    $2
    [[ $failures == "$before" ]] || printf 'not '
    echo "ok $n - $1"
}

fail() {
    printf '%s\n' "$*" | sed 's/^/# /'
    failures=$((failures + 1))
}

# expect STATUS WORD...: runs myelin; what it writes is left in ./out and ./err.
expect() {
    local wanted=$1 status=0
    shift
    "$myelin" "$@" >out 2>err </dev/null || status=$?
    [[ $status == "$wanted" ]] || fail "'myelin $*' exits with $status, not $wanted: $(head -3 err)"
}

# says FILE TEXT; same FILE NAME; silent FILE: of what was written.
says() { grep -qF -e "$2" "$1" || fail "'$2' is not in: $(cat "$1")"; }
same() { cmp -s out "$1" || fail "'$2' does not print the same as '$3'"; }
silent() { [[ ! -s $1 ]] || fail "should not be written to $1: $(head -3 "$1")"; }

mapfile -t names < <("$myelin" help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')

table() {
    local file name
    [[ ${#names[@]} -ge 4 ]] || fail "help lists only: ${names[*]}"
    for file in "$root"/src/cli/cmd_*.c; do
        name=${file##*/cmd_} name=${name%.c} name=${name//_/-}
        [[ " ${names[*]} " == *" $name "* ]] ||
            fail "${file#"$root"/} is not in the table of src/cli/commands.c"
    done
}

help() {
    local name
    for name in "${names[@]}"; do
        expect 0 help "$name"; silent err; cp out help
        says help "Usage: myelin $name "
        expect 0 "$name" --help; same help "$name --help" "help $name"
        expect 0 "$name" -h; same help "$name -h" "help $name"
        expect 0 --help "$name"; same help "--help $name" "help $name"
    done
    expect 0 help; cp out help
    expect 0 --help; same help --help help
    expect 0 -h; same help -h help
    expect 2; silent out; says err 'Commands:'
}

# With --help at its end a command line is parsed, and nothing runs.
examples() {
    local name line words
    for name in "${names[@]}"; do
        expect 0 help "$name"; cp out help
        while read -r line; do
            line=${line%% # *} line=${line%%[0-9]>*} line=${line%%[|><]*}
            eval "words=(${line#myelin })"
            expect 0 "${words[@]}" --help
        done < <(sed -n '/^Examples:/,/^$/s/^  \(myelin \)/\1/p' help)
    done
}

# page FILE WORD...: the page of the checkout is what the command line prints.
page() {
    local file=$1
    shift
    expect 0 "$@"
    diff -u "$root/$file" out >diff && return
    fail "$file is not what the rows say; renew it: ./myelin $* > $file"
    head -20 diff | sed 's/^/# /'
}

reference() { page docs/cli.md man --markdown; }

fields() { page docs/reference.md schema --markdown; }

manual() {
    local name warnings
    for name in '' "${names[@]}"; do
        # shellcheck disable=SC2086 # no word for the page of the program
        expect 0 man $name
        says out '.SH NAME'
        warnings=$(groff -man -Tascii -ww -z out 2>&1)
        [[ -z $warnings ]] || fail "the manual page of '$name': $warnings"
    done
}

misuse() {
    local name status
    expect 2 --no-such; silent out; says err "unknown option '--no-such'"; says err "try 'myelin help'"
    expect 2 hlep; says err "did you mean 'help'?"
    expect 2 help hlep; says err "did you mean 'help'?"
    expect 2 help help help
    expect 2 version --jsno; says err "did you mean '--json'?"; says err "try 'myelin help version'"
    expect 2 version --js
    expect 2 version --color; says err 'needs a value'
    expect 2 --color sometimes help; says err 'auto, always, never'
    expect 2 $'\e[31mred'
    ! grep -q $'\e' err || fail "a message steers the terminal"
    for name in "${names[@]}"; do
        case $name in
        run | restart | rerun | resume | copy | attach) status=125 ;;
        *) status=2 ;;
        esac
        expect $status "$name" --no-such-option; silent out
        says err "try 'myelin help $name'"
    done
}

version() {
    expect 0 --version; cp out version
    grep -qxE 'myelin [0-9]+\.[0-9]+\.[0-9]+' version || fail "an odd version: $(cat version)"
    expect 0 version; same version version --version
    expect 0 version --json; says out "\"version\": \"$(cut -d' ' -f2 version)\""
}

# What prints a text for people alone has none; neither has what prints another language.
for_scripts() {
    local name
    for name in "${names[@]}"; do
        [[ " completion help man schema " == *" $name "* ]] && continue
        expect 0 help "$name"; says out '--json '
    done
}

on_terminal() { TERM=xterm script -qec "$1" /dev/null </dev/null | tr -d '\r'; }

colour() {
    expect 0 help; ! grep -q $'\e' out || fail "colour in a file"
    expect 0 --color always help; says out $'\e[1m'
    expect 0 help --color=always; says out $'\e[1m'
    on_terminal "'$myelin' help" >out; says out $'\e[1m'
    on_terminal "NO_COLOR=1 '$myelin' help" >out; says out Usage
    ! grep -q $'\e' out || fail "NO_COLOR is not honoured"
    on_terminal "'$myelin' help --color never" >out; says out Usage
    ! grep -q $'\e' out || fail "--color never is not honoured"
}

narrow() {
    on_terminal "stty cols 50; '$myelin' --color never help" >out; says out Usage
    awk 'length > 50 { print "# " $0; bad = 1 } END { exit bad }' out || fail "wider than 50 columns"
}

lost_output() {
    local name status
    for name in version 'version --json' help; do
        status=0
        # shellcheck disable=SC2086 # words of a command line
        "$myelin" $name >/dev/full 2>err || status=$?
        [[ $status == 1 ]] || fail "a full disk gives $status"
        echo 'myelin: cannot write the output: No space left on device' | cmp -s - err ||
            fail "a full disk is told so: $(cat err)"
    done
    status=0
    "$myelin" version >&- 2>err || status=$?
    [[ $status == 1 ]] || fail "a closed output gives $status"
    # With SIGPIPE ignored the write fails; the reader has left, so nothing is said.
    mkfifo pipe
    (trap '' PIPE; exec 3<>pipe 4>pipe 3<&-; "$myelin" help >&4 2>err; echo $? >status)
    [[ $(cat status) == 1 ]] || fail "a reader that left gives $(cat status)"
    silent err
}

# The program is held at its first write, by a pipe that is full, so that it can be looked at.
closed_input() {
    local pid place=
    mkfifo full
    exec 5<>full
    dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null
    "$myelin" help >&5 <&- &
    pid=$!
    for _ in {1..100}; do
        place=$(readlink "/proc/$pid/fd/0") && [[ $place == /dev/null ]] && break
        sleep 0.05
    done
    kill "$pid"
    wait "$pid" 2>/dev/null
    exec 5<&-
    [[ $place == /dev/null ]] || fail "the first file opened would be the standard input: '$place'"
}

# completes EXPECTED WORD...: what bash offers for the last word.
completes() {
    local expected=$1 got
    shift
    got=$(source ./script; COMP_WORDS=(myelin "$@") COMP_CWORD=$#; _myelin; echo "${COMPREPLY[*]}")
    [[ $got == "$expected" ]] || fail "bash offers '$got' for 'myelin $*', not '$expected'"
}

bash_completion() {
    local name
    expect 0 completion bash; cp out script
    bash -n script || fail "bash cannot read its script"
    (source ./script && complete -p myelin) >/dev/null || fail "the script completes nothing"
    completes "${names[*]}" ''
    completes version vers
    completes 'auto always never' --color ''
    completes 'auto always never' --color =
    completes always --color = al
    completes version --color always vers
    completes version --color = always vers
    completes --json version --js
    completes 'bash zsh' completion ''
    completes version help vers
    completes '' version ''
    completes 'ls show get alias' model ''
    completes show model --color = never --json s
    completes --remove model alias net:1 best --rem
    completes '' completion -- --c
    completes '--version --color --help' --
    for name in "${names[@]}"; do
        completes --help "$name" --he
    done
    [[ " ${names[*]} " == *" run "* ]] || return
    touch polyaxonfile.yml
    mkdir showroom
    completes showroom model get net:1 show
    completes polyaxonfile.yml run polyaxonf
    completes polyaxonfile.yml --color never run --color = auto polyaxonf
}

zsh_completion() {
    expect 0 completion zsh; cp out script
    zsh -n script || fail "zsh cannot read its script"
    zsh -f "$root/tests/style/complete.zsh" "$scratch/script" 'myelin vers' 'myelin version --js' \
        'myelin completion z' 'myelin --color al' 'myelin help --color=n' 'myelin help vers' 'myelin model sh' >out 2>&1
    diff - out >diff <<'END' || fail "zsh completes otherwise: $(cat diff)"
myelin version 
myelin version --json 
myelin completion zsh 
myelin --color always 
myelin help --color=never 
myelin help version 
myelin model show 
END
}

law "every file of a command is in the table" table
law "help is the same by every way that leads to it" help
law "every example is a right command line" examples
law "docs/cli.md is made from the rows" reference
law "docs/reference.md is made from the rows" fields
law "every manual page is read without warnings" manual
law "misuse is told with the way out and its own status" misuse
law "the version is the same by every way that leads to it" version
law "every command that a script would read prints JSON" for_scripts
law "colour is for terminals, and the user decides" colour
law "help fits in a narrow terminal" narrow
law "output that is lost makes a failure" lost_output
law "the place of a closed standard stream is held" closed_input
law "bash completes from the rows" bash_completion
if command -v zsh >/dev/null; then
    law "zsh completes from the rows" zsh_completion
else
    echo "ok $((++n)) - zsh completes from the rows # SKIP zsh is not installed"
fi
echo "1..$n"
((failures == 0))
