// Package releasetest rehearses a release: it tags the modules in a copy of the working tree as
// CONTRIBUTING.md says, and builds programs of consumers with them, without a network. The test
// needs the build tag release: make rehearse runs it. It compiles every framework anew.
package releasetest
