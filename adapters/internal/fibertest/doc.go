// Package fibertest has tests that the adapters of both majors of Fiber pass. It knows neither, so
// that it can be in the root module.
package fibertest
