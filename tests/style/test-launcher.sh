#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds ./myelin to its promises, with real builds of a program of a few lines in place of ours.
# Prints TAP. Usage: test-launcher.sh SOURCE_ROOT
root=$(CDPATH='' cd -- "$1" && pwd -P) || exit 2
scratch=$(mktemp -d) || exit 2
trap 'chmod -R u+w -- "$scratch"; rm -rf -- "$scratch"' EXIT
chmod 755 "$scratch"
cd -- "$scratch" || exit 2
home="$scratch/a checkout"
n=0

checkout() {
    mkdir -p "$home/src" "$home/tools"
    cp -- "$root/myelin" "$home/"
    cp -- "$root/tools/setup" "$root/tools/dependencies" "$home/tools/"
    cp -- "$root/meson_options.txt" "$home/"
    echo "project('stand-in', 'c')
executable('myelin', 'src/main.c')" >"$home/meson.build"
    program one
}
# program WORD: it prints WORD, where it stands, and each of its arguments; its status is 7.
program() {
    cat >"$home/src/main.c" <<END
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char here[4096];
    printf("$1 %s", getcwd(here, sizeof here));
    for (int i = 1; i < argc; i++)
        printf(" [%s]", argv[i]);
    return 7;
}
END
}
# run STATUS-FILE COMMAND...: leaves out, err and status under that name.
run() {
    name=$1
    shift
    "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" </dev/null
    echo $? >"$scratch/$name.status"
}
# is NAME STATUS OUT: what run left; OUT is the whole of standard output.
is() {
    [ "$(cat "$scratch/$1.status")" = "$2" ] && [ "$(cat "$scratch/$1.out")" = "$3" ]
}
says() { grep -qF -e "$2" "$scratch/$1.err"; }
law() {
    said=$?
    n=$((n + 1))
    if [ "$said" -eq 0 ]; then
        echo "ok $n - $1"
    else
        tail -n 30 "$scratch"/*.out "$scratch"/*.err "$scratch"/*.status | sed 's/^/# /'
        echo "not ok $n - $1"
    fi
    rm -f -- "$scratch"/*.out "$scratch"/*.err "$scratch"/*.status
}
as_user() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        "$@"
    fi
}
checkout
run a "$home/myelin" first & run b "$home/myelin" second &
wait
is a 7 "one $scratch [first]" && is b 7 "one $scratch [second]"
law "two first calls at once both build and run"

run a "$home/myelin" '' 'x  y' '*' "it's"
is a 7 "one $scratch [] [x  y] [*] [it's]" && [ ! -s "$scratch/a.err" ]
law "arguments, directory and status are kept, and a fresh build is silent"

mkdir -p "$scratch/links" && ln -s "$home/myelin" links/direct && ln -s direct links/chain
run a links/chain up
is a 7 "one $scratch [up]"
law "it finds its checkout through a chain of links"

mv -- "$home" "$scratch/moved"
home=$scratch/moved
run a "$home/myelin"
program two
touch "$home/meson.build"
run b "$home/myelin"
is a 7 "one $scratch" && is b 7 "two $scratch"
law "a checkout that was moved runs and builds again"

echo 'broken' >>"$home/src/main.c"
run a "$home/myelin"
is a 125 "" && says a "the build failed" && says a broken && says a "$home/build/build.log"
law "a failed build ends with 125, shows the log and leaves standard output empty"

program three
if [ "$(id -u)" -ne 0 ]; then chmod -R a-w -- "$home"; fi
run a as_user "$home/myelin"
chmod -R u+w -- "$home"
is a 125 "" && says a "cannot write to"
law "a checkout that cannot be written to is said to be so"

echo 'build no-such-package-anywhere for this test' >>"$home/tools/dependencies"
if [ "$(id -u)" -eq 0 ]; then chown -R 65534:65534 -- "$home"; fi
run a as_user "$home/myelin"
is a 125 "" && says a "sudo apt-get install -y --no-install-recommends no-such-package-anywhere"
law "without the rights to install, the one line to type is printed"

echo "1..$n"
