// Package compat has the tests that need routers and libraries which users
// combine with the project, and which the project itself does not need. It is a
// module of its own, so that they are in nobody's go.sum.
package compat
