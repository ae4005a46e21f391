package file

// Place is a place in a file.
type Place struct {
	Line, Column int    // from 1; both 0 if the whole file is meant
	Field        string // the path of the field, such as policies[0].limits; "" if none is meant
}

// Problem is a mistake in a file, or something that is legal and probably one.
type Problem struct {
	Place
	Text string // describes the mistake and quotes the value
	Hint string // what would be right; may be ""
}

// At returns the place of the policy.
func (p *Policy) At() Place { return p.at.place() }

// At returns the place of the store section.
func (s *Store) At() Place { return s.at.place() }

// At returns the place of the server.
func (s *Postgres) At() Place { return s.at.place() }

// At returns the place of the secret.
func (s Secret) At() Place { return s.at.place() }
