package doctest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	link     = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|(?:href|src)="([^"]+)"`)
	heading  = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*\s*$`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	named    = regexp.MustCompile(`<a\s+(?:name|id)="([^"]+)"`)
	scheme   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// prose calls f for each line of the page that is in no block.
func (p *Page) prose(f func(number int, line string)) {
	inside := map[int]bool{}
	for _, b := range p.Blocks {
		for i := range strings.Count(b.Text, "\n") + 2 {
			inside[b.Line-1+i] = true
		}
	}
	for i, line := range p.Lines {
		if !inside[i+1] {
			f(i+1, line)
		}
	}
}

// anchors returns the anchors that GitHub gives the page's headings.
func (p *Page) anchors() map[string]bool {
	anchors := map[string]bool{}
	p.prose(func(_ int, line string) {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			anchors[m[1]] = true
		}
		m := heading.FindStringSubmatch(line)
		if m == nil {
			return
		}
		slug := slugOf(m[1])
		for n, base := 1, slug; anchors[slug]; n++ {
			slug = fmt.Sprintf("%s-%d", base, n)
		}
		anchors[slug] = true
	})
	return anchors
}

// slugOf makes an anchor of a heading as GitHub does: lower case, without punctuation, with hyphens
// for spaces.
func slugOf(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// CheckLinks returns the relative links of the pages to files or anchors that do not exist.
func CheckLinks(root string, pages []*Page) (problems []Problem) {
	known := map[string]*Page{}
	for _, p := range pages {
		known[p.File] = p
	}
	for _, p := range pages {
		p.prose(func(number int, line string) {
			for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "`code`"), -1) {
				target := m[1] + m[2] + m[3]
				if text := brokenLink(root, known, p, target); text != "" {
					problems = append(problems, Problem{p.File, number, "link to " + target + ": " + text})
				}
			}
		})
	}
	return problems
}

// brokenLink says what is wrong with a link of the page, "" if nothing is.
func brokenLink(root string, known map[string]*Page, p *Page, target string) string {
	if scheme.MatchString(target) {
		return ""
	}
	name, anchor, _ := strings.Cut(target, "#")
	file := p.File
	if name != "" {
		file = path.Join(path.Dir(p.File), name)
	}
	if strings.HasPrefix(file, "..") || strings.HasPrefix(name, "/") {
		return "it leads out of the repository"
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return "there is no such file"
	}
	if anchor == "" {
		return ""
	}
	page := known[file]
	if page == nil {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil || path.Ext(file) != ".md" {
			return "only Markdown files have anchors"
		}
		page, _ = parsePage(file, string(text))
	}
	if !page.anchors()[anchor] {
		return "there is no such heading"
	}
	return ""
}
