# tests/support/link_flags.sh -- sourced: link_flags BUILD-FOLDER prints what a program that is
# linked by hand with this folder's runtime library needs: sanitizers, counts of lines.
link_flags() {
    sed -n 's/^#define LS_EXTRA_[A-Z]* "\(.*\)"/\1/p' "$1/build_config.h" | tr '\n' ' '
}
