"""Paper 000 chapter 4 as an exhibit: operators as consumer groups, and the same job on dsp."""
