// Package processtest starts processes for tests: the servers that a test needs,
// and tests of a test binary that have to run in processes of their own. Each
// process is killed when its test ends.
//
//   - Serve starts a server at a free address and waits until it answers.
//     Packages redistest, memcachedtest and postgrestest use it.
//   - Start runs a test of the same test binary in a process of its own.
//   - StartProgram runs the program of a package main from its test binary.
package processtest
