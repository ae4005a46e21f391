package redisstore

import (
	"crypto/sha1" //nolint:gosec // as in script.go
	"encoding/hex"
	"os"
)

// The environment can name another script, so that one test binary serves all
// breaks of the script that internal/luamutants makes.
func init() {
	name := os.Getenv("FLOODGATE_REDIS_SCRIPT")
	if name == "" {
		return
	}
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	sum := sha1.Sum(text) //nolint:gosec // as in script.go
	script, scriptArg, scriptSHA = string(text), string(text), hex.EncodeToString(sum[:])
}

// ScriptText returns the script.
func ScriptText() string { return script }

// EncodeLimits is encodeLimits.
var EncodeLimits = encodeLimits
