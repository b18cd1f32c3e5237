package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"

	"github.com/xpkg-dev/xpkg/internal/registry/web"
)

// shorten returns a shorter name that is unique.
func shorten(name string) string {
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-20] + "~" + hex.EncodeToString(sum[:8])
}

// rewrite makes the links of a page, a feed or a graph relative to its file, and schedules the pages that it links to.
func (e *exporter) rewrite(body []byte, page, file string) []byte {
	var out bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out.Bytes()
		case html.StartTagToken, html.SelfClosingTagToken:
			raw := bytes.Clone(z.Raw())
			token := z.Token()
			if !e.rewriteTag(&token, page, file) {
				out.Write(raw)
			} else {
				out.WriteString(token.String())
			}
			if token.Data == "head" {
				out.WriteString(`<meta http-equiv="Content-Security-Policy" content="` + html.EscapeString(filePolicy()) + `">`)
			}
		default:
			out.Write(z.Raw())
		}
	}
}

// filePolicy returns the policy of pages for a page that states it itself, which cannot restrict frames.
func filePolicy() string {
	policy, _, _ := strings.Cut(web.Policy, "; frame-ancestors")
	return policy
}

// rewriteTag rewrites the attributes of a tag, and reports whether one has changed.
func (e *exporter) rewriteTag(token *html.Token, page, file string) bool {
	changed := false
	for i := range token.Attr {
		a := &token.Attr[i]
		if a.Key != "href" && a.Key != "src" && a.Key != "action" {
			continue
		}
		if to, ok := e.relative(a.Val, page, file); ok && to != a.Val {
			a.Val, changed = to, true
		}
	}
	return changed
}

// relative returns a link of a page for its file; false for links to other hosts and within the page.
func (e *exporter) relative(address, page, file string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.EscapedPath(), "/") {
		return "", false
	}
	target := u.EscapedPath()
	if target == page && u.Fragment != "" {
		return "#" + u.EscapedFragment(), true
	}
	to := relativePath(file, e.add(target))
	if u.RawQuery != "" {
		to += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		to += "#" + u.EscapedFragment()
	}
	return to, true
}

// relativePath returns the address of a file relative to another file.
func relativePath(from, to string) string {
	up := strings.Count(from, "/")
	parts := strings.Split(to, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	// A file in the same folder needs a prefix if its name could be read as a scheme.
	return path.Join(strings.Repeat("../", up), strings.Join(parts, "/"))
}
