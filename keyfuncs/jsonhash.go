package keyfuncs

import (
	"bytes"
	"encoding/json"
	"strings"
)

// json-iterator, with which Gin can be built, does not compare the names of an
// object's members: it compares 64-bit hashes of them, for which other names are
// easily found. These are its functions calcHash and Iterator.readFieldHash.
const (
	hashBegin  = 0x811c9dc5
	hashFactor = 0x1000193
)

// nameHash returns the hash of a name that a handler looks for.
func nameHash(name string) uint64 {
	h := uint64(hashBegin)
	for _, b := range []byte(strings.ToLower(name)) {
		h = (h ^ uint64(b)) * hashFactor
	}
	return h
}

// memberHash returns the hash of a member's name as it is written, with its
// quotes, and what is before it.
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
	if escaped != nil { // from the first escape on, characters are hashed, not bytes
		var rest string
		_ = json.Unmarshal(append(append([]byte{'"'}, escaped...), '"'), &rest) // it has been read before
		for _, c := range rest {
			add(c)
		}
	}
	return h
}

// isMember reports whether the value of another field of a form is a JSON object
// with a member of the name, at any depth. Gin reads any value so if the handler's
// struct has a struct or a map for the field. What it has read before an error
// stays.
func (s *spelling) isMember(value string) bool {
	if !startsAsJSON([]byte(value)) {
		return false
	}
	name := s.parts[len(s.parts)-1]
	hash := nameHash(name)
	d := json.NewDecoder(strings.NewReader(value))
	var objects []bool // of the values that are open: whether it is an object
	isName := false    // the next token is the name of a member, or an end
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
