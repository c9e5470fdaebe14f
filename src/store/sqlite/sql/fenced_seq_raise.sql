-- One more fenced transaction; its number stands with everything that it writes.
update fenced_seq set value = value + 1;
