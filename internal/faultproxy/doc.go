// Package faultproxy stands between a client and a server in tests, and does to
// their connections what networks do: it loses, delays and swallows replies and
// cuts connections.
package faultproxy
