// Command countername prints the name of a counter in a store.
//
//	go run ./examples/countername
package main

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

func main() {
	// The name of a counter depends on the limiter's name, the rule's name and the key, and on nothing else.
	fmt.Println(core.StoreRule{Name: "ip"}.StoredKey("api", []byte("203.0.113.7")))
}
