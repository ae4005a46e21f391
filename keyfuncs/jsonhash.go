package keyfuncs

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Gin can be built with json-iterator. json-iterator does not compare the names of an
// object's members, but 64-bit hashes of the names. It is easy to find another name with
// the same hash. nameHash and memberHash compute the hashes of json-iterator's functions
// calcHash and Iterator.readFieldHash.
const (
	hashBegin  = 0x811c9dc5
	hashFactor = 0x1000193
)

// nameHash returns the hash of a name that a handler reads.
func nameHash(name string) uint64 {
	h := uint64(hashBegin)
	for _, b := range []byte(strings.ToLower(name)) {
		h = (h ^ uint64(b)) * hashFactor
	}
	return h
}

// memberHash returns the hash of a member's name. literal is the name as it is written
// in the text, with its quotes. Any text without a quote may be before it.
func memberHash(literal []byte) uint64 {
	literal = literal[bytes.IndexByte(literal, '"'):]
	h := uint64(hashBegin)
	add := func(c rune) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = (h ^ uint64(c)) * hashFactor //nolint:gosec // a rune is not negative
	}
	plain, escaped := literal[1:len(literal)-1], []byte(nil)
	if i := bytes.IndexByte(plain, '\\'); i >= 0 {
		plain, escaped = plain[:i], plain[i:]
	}
	for _, b := range plain {
		add(rune(b))
	}
	if escaped != nil { // after the first escape, json-iterator hashes characters, not bytes
		var rest string
		_ = json.Unmarshal(append(append([]byte{'"'}, escaped...), '"'), &rest) // the decoder has accepted it before
		for _, c := range rest {
			add(c)
		}
	}
	return h
}

// isMember reports whether value is a JSON object that has a member with the name, at
// any depth. value is the value of another field of a form. If the handler's struct has
// a struct or a map for that field, Gin reads the value as JSON. Gin keeps the members
// that it has read before an error.
func (s *spelling) isMember(value string) bool {
	if !startsAsJSON([]byte(value)) {
		return false
	}
	name := s.parts[len(s.parts)-1]
	hash := nameHash(name)
	d := json.NewDecoder(strings.NewReader(value))
	var objects []bool // for each open object or array: whether it is an object
	var isName bool    // the next token is the name of a member, or ends the object
	for {
		from := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return false
		}
		text, isText := token.(string)
		if isName && isText {
			if sameName(text, name) || memberHash([]byte(value[from:d.InputOffset()])) == hash {
				return true
			}
			isName = false
			continue
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			objects = append(objects, token == json.Delim('{'))
		case json.Delim('}'), json.Delim(']'):
			objects = objects[:len(objects)-1]
		}
		if len(objects) == 0 {
			return false
		}
		isName = objects[len(objects)-1]
	}
}
