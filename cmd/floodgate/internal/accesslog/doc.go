// Package accesslog reads the access logs of web servers: the common and the
// combined format, and lines of JSON as nginx, Caddy and Traefik write them.
// The format of each line is detected separately.
package accesslog
