//go:build unix

// Command luamutants breaks the script of stores/redis on purpose, one operator or
// constant at a time, runs the tests of stores/redis against each break, and
// reports the breaks that no test notices. make mutants-lua runs it.
//
// The test binary is compiled once: FLOODGATE_REDIS_SCRIPT names the file with the
// script that it is to use. Survivors that nothing can observe are listed in
// survivors.txt, with a reason.
package main
