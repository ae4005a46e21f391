// Package leasetest tests stores on a server with core.Leases: what becomes of slots if the network
// loses, delays or swallows what a program and the server send each other, and requests that wait for
// what the server counts.
package leasetest
