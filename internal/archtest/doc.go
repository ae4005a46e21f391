// Package archtest has the tests of the project's architecture: who imports
// whom, and what a consumer has to take along.
package archtest
