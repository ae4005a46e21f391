package keyfuncs

import (
	"bytes"
	"encoding/xml"
	"io"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"github.com/floodgate-go/floodgate/internal/escapes"
)

// maxFields is the maximum number of fields in a body.
const maxFields = 1000

// once holds the value of a field that may be given only once.
type once struct {
	value string
	found bool
	count int // fields seen
}

// field counts a field with any name.
func (o *once) field() error {
	if o.count++; o.count > maxFields {
		return faultMany
	}
	return nil
}

// set sets the value of the wanted field.
func (o *once) set(value string) error {
	if o.found {
		return faultTwice
	}
	o.value, o.found = value, true
	return nil
}

// formValue returns the value of the field in a body of type application/x-www-form-urlencoded (URL
// standard, section 5.1). It returns an error if the field has a malformed escape or a semicolon,
// because net/url drops such a field and fasthttp reads it.
func formValue(body []byte, name *spelling) (string, error) {
	var o once
	for part := range strings.SplitSeq(string(body), "&") {
		if part == "" {
			continue
		}
		if err := o.field(); err != nil {
			return "", err
		}
		key, value, _ := strings.Cut(part, "=")
		key, keyOK := escapes.Decode(key)
		if !name.matches(key) {
			if value, _ := escapes.Decode(value); name.deep && name.isMember(value) {
				return "", faultUnreadable
			}
			continue
		}
		value, valueOK := escapes.Decode(value)
		if !keyOK || !valueOK || strings.Contains(part, ";") {
			return "", faultEscape
		}
		if err := o.set(value); err != nil {
			return "", err
		}
	}
	return o.value, nil
}

// multipartValue returns the value of the field in a body of type multipart/form-data (RFC 7578).
// If the body is malformed, it returns faultUnreadable and the value that it has found before that.
func multipartValue(body []byte, boundary string, name *spelling) (string, error) {
	var o once
	file := false
	for r := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := r.NextPart() // as net/http reads it
		switch {
		case err == io.EOF && !file: //nolint:errorlint // a wrapped EOF is not the end of the form
			return o.value, nil
		case err != nil:
			return o.value, faultUnreadable
		}
		if err := o.field(); err != nil {
			return "", err
		}
		if !name.matches(part.FormName()) {
			if name.deep && part.FileName() == "" {
				if value, err := io.ReadAll(part); err != nil || name.isMember(string(value)) {
					return "", faultUnreadable
				}
			}
			continue
		}
		var value []byte
		if part.FileName() != "" {
			file = true
		} else if value, err = io.ReadAll(part); err != nil { // the body is in memory, and its length is bounded
			return "", faultUnreadable
		}
		if err := o.set(string(value)); err != nil {
			return "", err
		}
	}
}

// rawBoundary returns the boundary that fasthttp finds in a Content-Type. fasthttp reads the
// header's parameters in another way than package mime.
func rawBoundary(contentType string) string {
	rest, found := strings.CutPrefix(contentType, "multipart/form-data;")
	for found {
		var parameter string
		parameter, rest, found = strings.Cut(rest, ";")
		value, named := strings.CutPrefix(strings.TrimLeft(parameter, " "), "boundary")
		if !named {
			continue
		}
		value, named = strings.CutPrefix(value, "=")
		if !named {
			return ""
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return value
	}
	return ""
}

// mayBeOther reports whether a handler that ignores the Content-Type could read the body as another
// type.
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

// mayBeNoForm reports whether a handler that ignores the Content-Type could read a body of type
// application/x-www-form-urlencoded as XML, YAML, TOML or MessagePack. Browsers and libraries
// escape all characters that are tested here (URL standard, section 5.2). Some programs, such as
// curl -d, escape nothing.
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

// separates reports whether c, or the character that c is a part of, may be white space or a line
// break in YAML.
func separates(c byte) bool { return c == ' ' || c >= utf8.RuneSelf }

// mayBeNoMultipart reports whether a handler that ignores the Content-Type could read a body of
// type multipart/form-data as YAML or TOML. It could if there is text before the first part, or if
// the boundary means something in YAML or TOML. Programs write boundaries with letters, digits and
// a few other characters (RFC 2046, section 5.1.1). A colon, an equals sign and a space are allowed
// too, but the first line could then be a key. The boundary "-" makes the first line "---", which
// begins a YAML document.
func mayBeNoMultipart(body []byte, boundary string) bool {
	first, found := bytes.CutPrefix(bytes.TrimLeft(body, "\r\n"), []byte("--"))
	return !found || !bytes.HasPrefix(first, []byte(boundary)) || boundary == "-" || strings.Trim(boundary, alphanumeric+"'()+_,-./?") != ""
}

// holdsXML reports whether a handler that ignores the Content-Type could find a value in the body
// with encoding/xml, in an element or an attribute with any name. A decoder skips text before the
// first element. It keeps the values that it has read before an error.
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
