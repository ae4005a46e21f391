package mulesoft

import (
	"fmt"
	"strings"
)

// store writes the store; "" if there is none.
func (w *writer) store(redis mapping) string {
	if redis == nil {
		return ""
	}
	for _, field := range rest(redis, "address", "user", "username", "password", "DB", "db") {
		w.lose("", "redis."+field+" (see the fields of store.redis)")
	}
	address, _ := redis["address"].(string)
	text := "store:\n  redis:\n    address: " + quoted(address) + "\n"
	for _, field := range []string{"user", "username"} {
		if user, ok := redis[field].(string); ok && user != "" {
			text += "    user: " + quoted(user) + "\n"
			break
		}
	}
	if redis["password"] != nil {
		text += "    password: {env: REDIS_PASSWORD} # the password stays out of this file\n"
	}
	for _, field := range []string{"DB", "db"} {
		if redis[field] != nil {
			text += fmt.Sprintf("    db: %s\n", quotedNumber(redis[field]))
			break
		}
	}
	switch {
	case len(w.blocks) == 2:
		w.lose("", "blockOnUnknownQuota differs between policies: on-failure is one for all (write on-failure: fail-closed or on-failure: fail-open in store)")
	case w.blocks[true]:
		text += "  on-failure: fail-closed # blockOnUnknownQuota: true\n"
	case w.blocks[false]:
		text += "  on-failure: fail-open # blockOnUnknownQuota: false\n"
	}
	return text
}

func quotedNumber(v any) string {
	text := fmt.Sprint(v)
	if text == "" || strings.Trim(text, digits) != "" {
		return quoted(text)
	}
	return text
}
