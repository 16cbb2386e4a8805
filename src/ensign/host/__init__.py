"""The machine behind ports: processes, files, clocks, topology. Fakes are shipped beside each."""
