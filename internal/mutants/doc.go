//go:build unix

// Command mutants breaks the code on purpose, one operator at a time, runs the
// tests against each break, and reports the breaks that no test notices. make
// mutants runs it. The breaks are made by gremlins
// (https://github.com/go-gremlins/gremlins).
//
// It works area by area (areas.go): a directory, the tests that must notice a
// break in it, and the share of breaks that they must notice. Survivors that
// nothing can observe are listed in survivors.txt, with a reason.
//
// gremlins calls the go command through this program (gotool.go), because
// gremlins alone tests the wrong package if a package is not named like its
// directory, takes code that does not compile for a break that was noticed, and
// leaves the processes of tests that it has stopped running.
package main
