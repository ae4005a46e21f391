// Package processtest starts processes for tests: the servers that a test needs,
// and programs of the test binary. Each process that Serve or Start has started is
// killed when its test ends.
//
//   - Serve starts a server at a free address and waits until it answers.
//     Packages redistest, memcachedtest and postgrestest use it.
//   - Start runs the program of the test binary in a process of its own, which may
//     be the main function of a package main. Main says which program that is.
package processtest
