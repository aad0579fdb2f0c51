"""What ``bench/pipeline.py`` measures: the job, and one module for each kind of contender."""
