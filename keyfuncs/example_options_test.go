package keyfuncs_test

import (
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func ExampleNewClientIP() {
	_, err := keyfuncs.NewClientIP(keyfuncs.Behind("X-Real-IP", "10.0.0.0/8", "nonsense"))
	fmt.Println(err)
	// Output: floodgate: configuration: Behind: "nonsense": must be a proxy's address, a prefix such as 10.0.0.0/8, or "unix"
}

func ExampleBehind() {
	ip := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", "10.0.0.0/8", "fd00::/8"))
	show(ip, &request{remote: "10.1.2.3:80", header: headers("X-Real-IP", "203.0.113.9")})
	// Output: "203.0.113.9" <nil>
}

func ExampleIPv6Prefix() {
	show(keyfuncs.ClientIP(keyfuncs.IPv6Prefix(56)), &request{remote: "[2001:db8:1:2::1]:80"})
	// Output: "2001:db8:1::/56" <nil>
}

func ExampleBehind_unixSocket() {
	ip := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", keyfuncs.UnixSocket))
	show(ip, &request{remote: "@", header: headers("X-Real-IP", "203.0.113.9")})
	// Output: "203.0.113.9" <nil>
}

func ExampleOnFallback() {
	warn := func(_ core.Request, why error) { fmt.Println(why) }
	ip := keyfuncs.ClientIP(keyfuncs.Behind("X-Real-IP", "10.0.0.0/8"), keyfuncs.OnFallback(warn))
	show(ip, &request{remote: "10.1.2.3:80"})
	// Output:
	// keyfuncs: the trusted proxy's header is missing
	// "10.1.2.3" <nil>
}

func formRequest(body string) *request {
	return &request{header: headers("Content-Type", formType), body: body}
}

func ExampleMaxBody() {
	show(keyfuncs.PostField("username", keyfuncs.MaxBody(1<<20)), formRequest("username=alice"))
	// Output: "alice" <nil>
}

func ExampleRequireValue() {
	show(keyfuncs.PostField("username", keyfuncs.RequireValue()), formRequest("password=x"))
	// Output: "" floodgate: bad request: the field "username" is missing, or cannot be read
}

// A type that a framework may read and PostField does not is refused.
func ExampleStrict() {
	xml := &request{header: headers("Content-Type", "text/xml"), body: "<form><username>alice</username></form>"}
	show(keyfuncs.PostField("username"), xml)
	show(keyfuncs.PostField("username", keyfuncs.Strict()), xml)
	// Output:
	// "" <nil>
	// "" floodgate: bad request: the field "username" cannot be read
}

func ExampleFormsOnly() {
	json := &request{header: headers("Content-Type", jsonType), body: `{"username":"alice"}`}
	show(keyfuncs.PostField("username", keyfuncs.FormsOnly()), json)
	show(keyfuncs.PostField("username", keyfuncs.FormsOnly()), formRequest("username=alice"))
	// Output:
	// "" <nil>
	// "alice" <nil>
}

func ExampleJSONPath() {
	email := keyfuncs.PostField("email", keyfuncs.JSONPath("user", "email"))
	show(email, &request{header: headers("Content-Type", jsonType), body: `{"user":{"email":"a@example.com"}}`})
	// Output: "a@example.com" <nil>
}

func ExampleNormalize() {
	firstLetter := func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("empty")
		}
		return s[:1], nil
	}
	show(keyfuncs.PostField("username", keyfuncs.Normalize(firstLetter)), formRequest("username=alice"))
	// Output: "a" <nil>
}
