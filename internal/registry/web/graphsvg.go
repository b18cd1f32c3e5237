package web

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"unicode"
)

// A graphNode is a box in the picture of a graph. Dependents are in columns left of the package, dependencies right of
// it.
type graphNode struct {
	repository, tag, url string
	column               int
	optional             bool
	x, y                 int
}

type graphEdge struct {
	from, to string
	optional bool
}

type graph struct {
	nodes []*graphNode
	edges []graphEdge
	// boxWidth is the width of every box.
	boxWidth int
}

// maxGraphDependents is the maximum number of dependents in a picture; the list below it has all of them.
const maxGraphDependents = 12

// graphOf returns the graph of a tree of dependencies and of the dependents.
func graphOf(at release, tree *treeNode, dependents []Dependent) graph {
	g := graph{}
	columns := map[string]*graphNode{}
	var visit func(n *treeNode, column int)
	visit = func(n *treeNode, column int) {
		known, ok := columns[n.Repository]
		if !ok {
			known = &graphNode{repository: n.Repository, tag: cmp.Or(n.Tag, n.Constraint), url: n.URL, optional: n.Optional}
			columns[n.Repository] = known
			g.nodes = append(g.nodes, known)
		}
		known.column = max(known.column, column)
		for _, c := range n.Children {
			if c.Repository != n.Repository {
				g.edges = append(g.edges, graphEdge{n.Repository, c.Repository, c.Optional})
			}
			visit(c, column+1)
		}
	}
	visit(tree, 0)
	for _, d := range dependents[:min(len(dependents), maxGraphDependents)] {
		if columns[d.Repository] != nil {
			continue
		}
		g.nodes = append(g.nodes, &graphNode{
			repository: d.Repository, tag: d.Tag, url: packageURL(d.Repository, ""), column: -1, optional: d.Optional,
		})
		g.edges = append(g.edges, graphEdge{d.Repository, at.Repository(), d.Optional})
	}
	return g
}

// Sizes of the picture.
const (
	leastBox, mostBox = 150, 320
	boxHeight         = 44
	boxPadding        = 12
	columnGap, rowGap = 70, 14
	graphMargin       = 4
	// nameSize and tagSize are the sizes of the labels. The attributes apply where no style sheet does.
	nameSize, tagSize = 13, 12
)

// graphSVG returns the picture of a graph with links; empty if the graph has one box.
func graphSVG(g graph) template.HTML {
	if len(g.nodes) < 2 {
		return ""
	}
	g.sizeBoxes()
	width, height := g.place()
	boxes := map[string]*graphNode{}
	for _, n := range g.nodes {
		boxes[n.repository] = n
	}
	var out strings.Builder
	fmt.Fprintf(
		&out,
		`<svg class="graph" role="img" aria-label="Dependency graph; the list below has the same content" viewBox="0 0 %d %d" width="%d" height="%d" xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" fill="none" stroke="#697684">`,
		width, height, width, height,
	)
	for _, e := range g.edges {
		g.writeEdge(&out, boxes[e.from], boxes[e.to], e.optional)
	}
	for _, n := range g.nodes {
		n.write(&out, g.boxWidth)
	}
	out.WriteString("</svg>")
	return template.HTML(out.String()) //nolint:gosec // all text is escaped, and all other values are numbers
}

// sizeBoxes sets the width of the boxes to that of the longest label, within limits.
func (g *graph) sizeBoxes() {
	widest := 0.0
	for _, n := range g.nodes {
		widest = max(widest, textWidth(lastSegment(n.repository), nameSize), textWidth(n.tag, tagSize))
	}
	g.boxWidth = min(max(int(math.Ceil(widest))+2*boxPadding, leastBox), mostBox)
}

// place sets the positions of the boxes, and returns the size of the picture.
func (g graph) place() (width, height int) {
	columns := map[int][]*graphNode{}
	least, most := 0, 0
	for _, n := range g.nodes {
		columns[n.column] = append(columns[n.column], n)
		least, most = min(least, n.column), max(most, n.column)
	}
	rows := 0
	for _, c := range columns {
		rows = max(rows, len(c))
	}
	height = rows*(boxHeight+rowGap) - rowGap + 2*graphMargin
	for i, c := range columns {
		slices.SortStableFunc(c, func(a, b *graphNode) int { return strings.Compare(a.repository, b.repository) })
		top := (height - len(c)*(boxHeight+rowGap) + rowGap) / 2
		for row, n := range c {
			n.x, n.y = graphMargin+(i-least)*(g.boxWidth+columnGap), top+row*(boxHeight+rowGap)
		}
	}
	return 2*graphMargin + (most-least+1)*(g.boxWidth+columnGap) - columnGap, height
}

func (g graph) writeEdge(out *strings.Builder, from, to *graphNode, optional bool) {
	class := "edge"
	if optional {
		class = "edge optional"
	}
	x1, y1, x2, y2 := from.x+g.boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2
	middle := (x1 + x2) / 2
	fmt.Fprintf(out, `<path class="%s" d="M%d %dC%d %d %d %d %d %d"/>`, class, x1, y1, middle, y1, middle, y2, x2-6, y2)
	fmt.Fprintf(out, `<path class="tip" d="M%d %dl-7 -4v8z"/>`, x2, y2)
}

func (n *graphNode) write(out *strings.Builder, width int) {
	class := "box"
	switch {
	case n.column == 0:
		class = "box self"
	case n.url == "":
		class = "box unknown"
	}
	if n.url != "" {
		fmt.Fprintf(out, `<a href="%s" tabindex="-1">`, template.HTMLEscapeString(n.url))
	}
	fmt.Fprintf(out, `<g class="%s"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class,
		template.HTMLEscapeString(n.repository+" "+n.tag), n.x, n.y, width, boxHeight)
	for _, l := range []struct {
		class, text string
		size, y     int
	}{{"name", lastSegment(n.repository), nameSize, 19}, {"minor", n.tag, tagSize, 35}} {
		fmt.Fprintf(out, `<text class="%s" x="%d" y="%d" font-size="%d" fill="#56606b" stroke="none">%s</text>`,
			l.class, n.x+boxPadding, n.y+l.y, l.size,
			template.HTMLEscapeString(fitLabel(l.text, l.size, width-2*boxPadding)))
	}
	out.WriteString("</g>")
	if n.url != "" {
		out.WriteString("</a>")
	}
}

// textWidth returns a width that a text does not exceed in bold letters of the common fonts. The server does not know
// the font of the reader.
func textWidth(text string, size int) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("mwMW@%…", r), r > unicode.MaxLatin1:
			width += 1.15
		case strings.ContainsRune("ijlfrt.,:;|!'-/ ()[]", r):
			width += 0.62
		case r >= 'A' && r <= 'Z', strings.ContainsRune("=<>^~+", r):
			width += 0.88
		default:
			width += 0.74
		}
	}
	return width * float64(size)
}

// fitLabel returns a label, or its beginning and its end if it is wider than most: the versions of a package, and
// packages of a family, often differ at the end.
func fitLabel(text string, size, most int) string {
	const mostRunes = 120 // These do not fit.
	runes := []rune(text)
	if n := len(runes); n > mostRunes {
		runes = slices.Delete(runes, mostRunes/2, n-mostRunes/2)
	}
	for textWidth(text, size) > float64(most) {
		runes = slices.Delete(runes, len(runes)/2, len(runes)/2+1)
		text = string(runes[:len(runes)/2]) + "…" + string(runes[len(runes)/2:])
	}
	return text
}

// graphImage returns the picture alone, for documents of others.
func (h *Handler) graphImage(r *request, at release) (*response, error) {
	tree, err := dependencyTree(r.ctx, r.view, at)
	if err != nil {
		return nil, err
	}
	dependents, err := r.view.Dependents(r.ctx, at.Repository())
	if err != nil {
		return nil, err
	}
	svg := graphSVG(graphOf(at, tree, dependents))
	if svg == "" {
		return nil, ErrNotFound
	}
	return &response{mediaType: "image/svg+xml", body: []byte(svg), policy: "sandbox; default-src 'none'"}, nil
}
