package file

import (
	"fmt"
	"os"
	"strings"

	"github.com/floodgate-go/floodgate/internal/regularfile"
)

// Secret is a text that may stand elsewhere: in a variable of the environment,
// or in a file.
type Secret struct {
	at              value
	text, env, file string
}

// secretMapping returns the table of a secret that stands elsewhere.
func secretMapping() *mapping[Secret] {
	return &mapping[Secret]{
		name: "secret", want: secretWant, about: "Where a user or a password is kept outside the file.",
		fields: []field[Secret]{
			{
				name: "env", example: "REDIS_PASSWORD",
				about: "The environment variable that has the text.",
				value: set(text("the name of a variable"), func(s *Secret) *string { return &s.env }),
			}, {
				name: "file", example: "/run/secrets/redis",
				about: "The file that has the text; a line break at its end is ignored.",
				value: set(text("the path of a file"), func(s *Secret) *string { return &s.file }),
			},
		},
		rules: exactlyOne{fields: []string{"env", "file"}, several: "want either env or file"},
	}
}

const secretWant = "text, {env: NAME} or {file: PATH}"

// secret is a text, or where it is to be found. No message has the text in it.
func secret() kind[Secret] {
	elsewhere := secretMapping().kind(func(v value) Secret { return Secret{at: v} })
	whole := oneOf("text, or a [secret](#secret)", text("").shape, elsewhere.shape)
	look := shape{whole.words, func(d *definitions) object {
		return d.ref("secretOrText", func() object { return whole.schema(d) })
	}, whole.sections}
	return kind[Secret]{look, func(r *reader, v value) (Secret, bool) {
		s := Secret{at: v}
		opened, ok := r.open(v)
		if !ok {
			return s, false
		}
		if isMapping(opened) {
			return elsewhere.read(r, opened)
		}
		if isList(opened) || isNull(opened.node) {
			r.bad(v, describe(opened.node)+": want "+secretWant, "")
			return s, false
		}
		if s.text = kindText(opened.node); s.text == "" {
			r.bad(v, "is not text: want "+secretWant, "put text that looks like something else in quotes")
		}
		if variable.MatchString(s.text) {
			r.bad(v, "is the name of a variable, which is not replaced by its value", "write {env: NAME}, with the name without the dollar sign")
			return s, false
		}
		return s, s.text != ""
	}}
}

func (s Secret) words() []string { return []string{s.text, s.env, s.file} }

// Text returns the secret's text. It reads the file or the environment.
func (s Secret) Text() (string, error) {
	switch {
	case s.env != "":
		text, found := os.LookupEnv(s.env)
		if !found {
			return "", fmt.Errorf("the variable %s is not in the environment", s.env)
		}
		return text, nil
	case s.file != "":
		const most = 64 << 10
		text, err := regularfile.Read(s.file, most)
		if err != nil {
			return "", err
		}
		if len(text) > most {
			return "", fmt.Errorf("%s is longer than 64 KiB: want a file with the text alone", s.file)
		}
		return strings.TrimRight(string(text), "\r\n"), nil
	default:
		return s.text, nil
	}
}
