"""`python -m nitka.cli`."""

from nitka.cli import main

main()
