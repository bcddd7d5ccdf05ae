"""WHERE it runs: hardware, hosts (lab, fake), layouts and the deployment of a layout on them."""
