// Package doctest tests the documents: README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and
// docs. It takes the fenced blocks from the files that readers see, so that no copy of a block can
// differ from what is printed.
//
// A Go block that begins with "package main" is a program. It is built, runs, and must end by
// itself with status 0. If the next block is text or console, that is what the program prints. A Go
// block that begins with another package clause is a test file: go test runs it. Every other Go
// block is a fragment: a comment above it names the prelude in whose context it is compiled.
//
// In a console block, each line that begins with "$ " is a command, and the lines below it are what
// it prints. "floodgate", "go run ./cmd/floodgate" and "go run ./examples/..." start the programs
// of this tree. The command runs in an empty folder, which has the files of the page (see file) and
// examples.
//
// HTML comments directly above a block tell what readers need not see:
//
//	<!-- go: nethttp -->        the prelude of a fragment: preludes/nethttp.txt
//	<!-- go: nethttp, gin -->   the same for each line of code by itself
//	<!-- policy -->             the YAML block is a policy file: policy.Parse reads it
//	<!-- policy: warns -->      the same for a file that has warnings
//	<!-- file: limits.yaml -->  commands of the page find the block under this name
//	<!-- needs: redis -->       127.0.0.1:6379 is replaced by a server of the test
//	<!-- server: ./examples/login/nethttp -->  commands ask this program at
//	                            127.0.0.1:8080, which the test starts elsewhere
//	<!-- serves -->            the program serves at 127.0.0.1:8080 until the test ends it;
//	                            commands in the console block below ask it
//	<!-- example: redis -->     the program is examples/redis/main.go without its first comment;
//	                            a test file is named whole: testing/clock_test.go
//	<!-- before -->             the program needs a module that bench/go.mod requires
//	<!-- varies: [0-9]+ ms -->  what the regular expression matches is not compared
//	<!-- not output -->         the block is not what the program above prints
//	<!-- not run: why -->       the console block is not run
//
// A name in a code span, such as core.Config.Store, must be one that its package exports. Go blocks
// are as gofmt writes them. A line "..." in a text or console block stands for any number of lines.
package doctest
