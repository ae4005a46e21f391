package keyfuncs

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf8"
)

// mayBeOther reports whether a handler that ignores the Content-Type could read the body
// as another type.
func (b bodyType) mayBeOther(body []byte) bool {
	switch b.kind {
	case formBody:
		return mayBeNoForm(body)
	case multipartBody:
		return mayBeNoMultipart(body, b.boundary) || holdsXML(body)
	default:
		return holdsXML(body)
	}
}

// mayBeNoForm reports whether a handler that ignores the Content-Type could read a body
// of type application/x-www-form-urlencoded as XML, YAML, TOML or MessagePack. Browsers
// and libraries escape all characters that are tested here (URL standard, section 5.2).
// Some programs, such as curl -d, escape nothing.
func mayBeNoForm(body []byte) bool {
	if body[0] >= utf8.RuneSelf { // a map or an array in MessagePack, or a byte order mark
		return true
	}
	key, value, _ := bytes.Cut(body, []byte("="))
	for i, c := range body {
		var next byte
		if i+1 < len(body) {
			next = body[i+1]
		}
		switch {
		case c < ' ' || c == 0x7f: // such as a line break: YAML, TOML
			return true
		case c == '<' && bytes.ContainsRune(body[i:], '>'): // XML; decoders ignore text before the first element
			return true
		case c == ':' && separates(next): // a mapping in YAML, on one line
			return true
		case c == '{' && bytes.ContainsRune(body[i:], ':'): // a mapping in braces; some decoders accept one after any character
			return true
		}
	}
	// A line of TOML has one value, and a comment may follow the value.
	if bytes.IndexAny(bytes.TrimLeft(value, " "), "\"'{[") == 0 {
		return true
	}
	value, _, commented := bytes.Cut(value, []byte("#"))
	return commented && !bytes.ContainsRune(value, '&') && !bytes.ContainsRune(key, '&')
}

// separates reports whether c, or the character that c is a part of, may be white space
// or a line break in YAML.
func separates(c byte) bool { return c == ' ' || c >= utf8.RuneSelf }

// mayBeNoMultipart reports whether a handler that ignores the Content-Type could read a
// body of type multipart/form-data as YAML or TOML. It could if there is text before the
// first part, or if the boundary means something in YAML or TOML. Programs write
// boundaries with letters, digits and a few other characters (RFC 2046, section 5.1.1).
// A colon, an equals sign and a space are allowed too, but the first line could then be
// a key. The boundary "-" makes the first line "---", which begins a YAML document.
func mayBeNoMultipart(body []byte, boundary string) bool {
	first, found := bytes.CutPrefix(bytes.TrimLeft(body, "\r\n"), []byte("--"))
	return !found || !bytes.HasPrefix(first, []byte(boundary)) || boundary == "-" || strings.Trim(boundary, alphanumeric+"'()+_,-./?") != ""
}

// holdsXML reports whether a handler that ignores the Content-Type could find a value in
// the body with encoding/xml, in an element or an attribute with any name. A decoder
// skips text before the first element. It keeps the values that it has read before an
// error.
func holdsXML(body []byte) bool {
	if !bytes.ContainsRune(body, '<') {
		return false
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	inside, text := false, false
	for {
		token, err := d.RawToken()
		if err != nil {
			return false
		}
		switch token := token.(type) {
		case xml.StartElement:
			if inside = true; len(token.Attr) > 0 {
				return true
			}
		case xml.CharData:
			text = text || inside && len(bytes.TrimSpace(token)) > 0
		case xml.Comment:
			text = inside
		case xml.EndElement:
			if text {
				return true
			}
		}
	}
}
