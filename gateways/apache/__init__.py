"""Apache in front of radosgw, by mod_proxy_http or FastCGI."""
