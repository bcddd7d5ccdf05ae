"""What each layer of a layout achieves for the same requests, from disks to the gateway's front."""
