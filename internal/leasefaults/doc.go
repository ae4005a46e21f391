// Package leasefaults tests what becomes of slots of core.Leases if the network between a program
// and the server of a store loses, delays or swallows what they send each other.
package leasefaults
