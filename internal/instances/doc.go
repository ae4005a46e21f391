// Package instances tests what several processes of an application share: they
// allow a quota together, also if some of them are killed and started again, or
// are of another version.
package instances
