"""``python -m formal_llm``: the command line."""

from formal_llm.cli.start import main

if __name__ == "__main__":
    main()
