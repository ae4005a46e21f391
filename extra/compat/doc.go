// Package compat tests the adapters and stores beside routers and libraries that users combine with them.
package compat
