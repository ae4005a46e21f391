// Command keys prints the keys that key functions make of a request.
//
//	go run ./examples/keys
package main

import (
	"fmt"
	"strings"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// tenant is a key function of our own: the first label of the host.
func tenant(r core.Request) (string, error) {
	for _, host := range r.HeaderValues("Host") {
		name, _, _ := strings.Cut(host, ".")
		return name, nil
	}
	return "", nil
}

func main() {
	currentUser := func(r core.Request) string { user, _ := r.Value("user").(string); return user }
	r := floodgatetest.NewRequest("GET", "https://acme.example.com/items/7?lang=de",
		floodgatetest.From("203.0.113.7:5000"),
		floodgatetest.Route("GET /items/{id}"),
		floodgatetest.Value("user", "ann"))
	for _, k := range []struct {
		name string
		f    core.KeyFunc
	}{
		{"ClientIP", keyfuncs.ClientIP()},
		{"User", keyfuncs.User(currentUser)},
		{"Route", keyfuncs.Route()},
		{"Query", keyfuncs.Query("lang")},
		{"Header", keyfuncs.Header("X-Api-Key")},
		{"OrSkip", keyfuncs.OrSkip(keyfuncs.Header("X-Api-Key"))},
		{"Func", keyfuncs.Func(tenant)},
	} {
		key, err := k.f(nil, r)
		fmt.Printf("%-9s %q %v\n", k.name, key, err)
	}
}
