"""What ``bench/elastic.py`` runs: an operator whose instances come and go by a script."""
