"""The taxi job of paper 000, section 4.3.2: trips that begin or end in a part of the city."""
