"""Greets people."""

import sys


def greet(name):
    # The greeting should sound friendly.
    return f"HELLO, {name.upper()}!!!"


if __name__ == "__main__":
    print(greet(sys.argv[1] if len(sys.argv) > 1 else "you"))
