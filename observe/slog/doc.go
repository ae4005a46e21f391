// Package slogobserve logs what a limiter refuses, and what fails, with log/slog: a few
// lines a second, however many requests are refused.
//
//	observer, err := slogobserve.New(slogobserve.Config{})
//	limiter, err := core.New(core.Config{Rules: rules, Observer: observer})
//
// An audit log, which must have a line for each refusal, is a hook:
// core.Hooks.OnDisallowed.
package slogobserve
