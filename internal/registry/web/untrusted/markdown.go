package untrusted

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Limits of Markdown.
const (
	// MaxMarkdown is the maximum size in bytes. Longer text is shown as plain text up to this size.
	MaxMarkdown = 256 << 10
	// maxNesting is the maximum number of block markers at the start of a line, and of brackets or emphasis marks in a
	// paragraph without a letter between them.
	maxNesting = 40
	// maxBrackets is the maximum number of opening brackets that are not closed in a line.
	maxBrackets = 100
	// maxDelimiters is the maximum number of marks of emphasis and links in one block. The parser is quadratic in them.
	maxDelimiters = 2000
	// maxRendered is the maximum number of texts whose HTML is kept, and maxKept the maximum size of such HTML.
	maxRendered, maxKept = 200, 128 << 10
)

// headingShift lowers the headings of Markdown below the headings of the page.
const headingShift = 2

// A Renderer renders Markdown. It is safe for concurrent use.
type Renderer struct {
	// prefix precedes the names of headings, so that they never equal another identifier of the page.
	prefix   string
	markdown goldmark.Markdown
	policy   *bluemonday.Policy

	mu       sync.Mutex
	rendered map[[sha256.Size]byte]template.HTML
}

// NewRenderer returns a renderer for one part of a page. The prefix of identifiers consists of letters and hyphens,
// such as "readme-", and distinguishes the parts.
func NewRenderer(prefix string) *Renderer {
	return &Renderer{
		prefix: prefix,
		markdown: goldmark.New(
			goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify, extension.TaskList),
			goldmark.WithParserOptions(
				parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(neutralizer{prefix}, 1000)),
			),
			goldmark.WithRendererOptions(html.WithXHTML()),
		),
		policy: policy(prefix),
	}
}

// policy returns the elements and attributes that Markdown can produce. The neutralizer has already changed links and
// images; the policy holds if the Markdown library has a fault.
func policy(prefix string) *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p",
		"br", "hr", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(https?://|mailto:|#` + prefix + `)`)).OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^` + Rel + `$`)).OnElements("a")
	p.AllowAttrs("id").Matching(regexp.MustCompile(`^`+prefix+`[a-zA-Z0-9_-]+$`)).OnElements("h3", "h4", "h5", "h6")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^image$`)).OnElements("a")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(true)
	p.RequireParseableURLs(true)
	return p
}

// Markdown returns Markdown as HTML without images, scripts and raw HTML. Text that exceeds a limit is returned as
// plain text, shortened to MaxMarkdown bytes.
func (r *Renderer) Markdown(source string) template.HTML {
	key := sha256.Sum256([]byte(source))
	r.mu.Lock()
	out, ok := r.rendered[key]
	r.mu.Unlock()
	if ok {
		return out
	}
	if out = r.render(source); len(out) > maxKept {
		return out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rendered) >= maxRendered || r.rendered == nil {
		r.rendered = map[[sha256.Size]byte]template.HTML{}
	}
	r.rendered[key] = out
	return out
}

func (r *Renderer) render(source string) template.HTML {
	if len(source) > MaxMarkdown || isDeeplyNested(source) {
		return plain(source)
	}
	var out bytes.Buffer
	if err := r.markdown.Convert([]byte(source), &out, parser.WithContext(parser.NewContext(parser.WithIDs(&headingIDs{
		prefix: r.prefix,
	})))); err != nil {
		return plain(source)
	}
	return template.HTML(r.policy.SanitizeBytes(out.Bytes())) //nolint:gosec // the policy removes everything that is not safe
}

// plain returns text as preformatted HTML.
func plain(source string) template.HTML {
	return template.HTML(`<pre class="plain">` + template.HTMLEscapeString(wording.Clip(source, MaxMarkdown)) + `</pre>`) //nolint:gosec // the text is escaped
}

var (
	blockMarkers = lazyregexp.New(`^(?:[ \t]*(?:>|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)))*`)
	bullet       = lazyregexp.New(`^[ \t]*[-+*] +[^ \t]`)
	marks        = lazyregexp.New(fmt.Sprintf("[\\[\\]()!*_~`<]{%d,}", maxNesting*4))
)

// isDeeplyNested reports whether Markdown nests deeper than documents do. The parser recurses for each level, and is
// quadratic in some of them.
func isDeeplyNested(source string) bool {
	if marks().MatchString(source) {
		return true
	}
	indent, delimiters := 0, 0
	for line := range strings.Lines(source) {
		markers := blockMarkers().FindString(line)
		if bullet().MatchString(line) || strings.TrimSpace(line) == "" {
			delimiters = 0
		}
		for _, mark := range "*_[~" {
			delimiters += strings.Count(line, string(mark))
		}
		depth := strings.Count(markers, ">") + strings.Count(markers, "- ") + strings.Count(markers, "* ") +
			strings.Count(markers, "+ ") +
			strings.Count(markers, ". ") + strings.Count(markers, ") ")
		if depth > maxNesting || delimiters > maxDelimiters {
			return true
		}
		if strings.Count(line, "[")-strings.Count(line, "]") > maxBrackets {
			return true
		}
		indent = max(indent, len(line)-len(strings.TrimLeft(line, " ")))
	}
	return indent > 8*maxNesting
}

// headingIDs generates the identifiers of headings.
type headingIDs struct {
	prefix string
	used   map[string]int
}

var notInID = lazyregexp.New(`[^a-z0-9_-]+`)

// Generate implements parser.IDs.
func (h *headingIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	if h.used == nil {
		h.used = map[string]int{}
	}
	name := strings.Trim(notInID().ReplaceAllString(strings.ReplaceAll(strings.ToLower(string(value)), " ", "-"), ""), "-")
	if name == "" || len(name) > 100 {
		name = "heading"
	}
	h.used[name]++
	if n := h.used[name]; n > 1 {
		name = fmt.Sprintf("%s-%d", name, n-1)
	}
	return []byte(h.prefix + name)
}

// Put implements parser.IDs.
func (h *headingIDs) Put([]byte) {}

// neutralizer replaces images by links, removes unsafe links, lowers headings and aligns the cells of tables.
type neutralizer struct{ prefix string }

// Transform implements parser.ASTTransformer.
func (t neutralizer) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	source := reader.Source()
	var links, images []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			n.Level = min(n.Level+headingShift, 6)
		case *tables.TableCell:
			alignCell(n)
		case *ast.Image:
			images = append(images, n)
		case *ast.Link, *ast.AutoLink:
			links = append(links, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range images {
		replaceImage(n.(*ast.Image), source)
	}
	for _, n := range links {
		neutralizeLink(n, source, t.prefix)
	}
}

// alignments are the classes of cells by their alignment; the default is left.
var alignments = map[tables.Alignment]string{tables.AlignCenter: "center", tables.AlignRight: "right"}

// alignCell states the alignment of a cell by a class, because the pages allow no styles in HTML.
func alignCell(n *tables.TableCell) {
	if class := alignments[n.Alignment]; class != "" {
		n.SetAttributeString("class", []byte(class))
	}
	n.Alignment = tables.AlignNone
}

// neutralizeLink restricts the address of a link. A link without a safe address becomes its text.
func neutralizeLink(n ast.Node, source []byte, prefix string) {
	switch n := n.(type) {
	case *ast.Link:
		address := string(n.Destination)
		if name, ok := strings.CutPrefix(address, "#"); ok {
			address = "#" + prefix + notInID().ReplaceAllString(strings.ToLower(name), "")
		} else if address = Link(address); address == "" {
			unwrap(n)
			return
		}
		n.Destination, n.Title = []byte(address), nil
		n.SetAttributeString("rel", []byte(Rel))
	case *ast.AutoLink:
		if Link(autoAddress(n, source)) == "" {
			n.Parent().ReplaceChild(n.Parent(), n, ast.NewString(n.Label(source)))
			return
		}
		n.SetAttributeString("rel", []byte(Rel))
	}
}

func autoAddress(n *ast.AutoLink, source []byte) string {
	address := string(n.URL(source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
		address = "mailto:" + address
	}
	return address
}

// replaceImage replaces an image by a link to it, or by its alternative text if it is in a link or has no safe address.
func replaceImage(n *ast.Image, source []byte) {
	alt := strings.TrimSpace(string(n.Text(source))) //nolint:staticcheck // Text is deprecated for rendering, and this is the text for readers
	if alt == "" {
		alt = "image"
	}
	var replacement ast.Node = ast.NewString([]byte(alt))
	if address := Link(string(n.Destination)); address != "" && !isInLink(n) {
		link := ast.NewLink()
		link.Destination = []byte(address)
		link.SetAttributeString("class", []byte("image"))
		link.SetAttributeString("rel", []byte(Rel))
		link.AppendChild(link, replacement)
		replacement = link
	}
	n.Parent().ReplaceChild(n.Parent(), n, replacement)
}

func isInLink(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// unwrap replaces a node by its children.
func unwrap(n ast.Node) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; {
		next := c.NextSibling()
		parent.InsertBefore(parent, n, c)
		c = next
	}
	parent.RemoveChild(parent, n)
}
