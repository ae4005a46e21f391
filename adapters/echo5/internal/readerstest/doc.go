// Package readerstest tests that handlers read the name that a login guard has counted. It is
// a module of its own, so that what its tests need is not in the go.mod of the adapter.
package readerstest
