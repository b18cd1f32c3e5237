package web

import (
	"strings"

	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
)

// A node is a field on a page.
type node struct {
	*fields.Field
	Children []*node
	// More is the path of the page with the fields below this one; empty if they are on this page.
	More string
	// Open reports that the fields below are shown without a click.
	Open bool
	// Since is the version of the package in which the field appeared; empty if it is not known, or was the first.
	Since string
}

// Limits of a page of fields.
const (
	// pageFields is the number of fields on a page. Fields beyond it are on pages of their own.
	pageFields = 300
	// pageText is the size of the descriptions on a page, in bytes.
	pageText = 60_000
	// mostSiblings is the maximum number of fields of one object that are shown.
	mostSiblings = 2_000
	openLevels   = 3
)

// An outliner makes the nodes of a page.
type outliner struct {
	// base is the path of the pages of fields.
	base  string
	since map[string]string
	// first is the first version of the package.
	first string
}

// outline returns the fields below a field, level by level, until the page is full. Every level of every object is
// either complete or on a page of its own. The first level is always shown.
func outline(root *fields.Field, o outliner) []*node {
	top := &node{Field: root}
	count, size := 0, 0
	level := []*node{top}
	for depth := 1; len(level) > 0; depth++ {
		var next []*node
		for _, n := range level {
			children, texts := len(n.Field.Children), textOf(n.Field.Children)
			if depth > 1 && (count+children > pageFields || size+texts > pageText) {
				n.More = o.base + fieldURL(n.Path)
				continue
			}
			count, size = count+children, size+texts
			n.Open = depth <= openLevels
			n.Children = o.nodes(n.Field.Children)
			for _, c := range n.Children {
				if len(c.Field.Children) > 0 {
					next = append(next, c)
				}
			}
		}
		level = next
	}
	return top.Children
}

func (o outliner) nodes(all []fields.Field) []*node {
	all = all[:min(len(all), mostSiblings)]
	out := make([]*node, len(all))
	for i := range all {
		f := &all[i]
		out[i] = &node{Field: f}
		if since := o.since[f.Path]; since != o.first {
			out[i].Since = since
		}
	}
	return out
}

// textOf returns the size of the text of fields.
func textOf(all []fields.Field) int {
	n := 0
	for _, f := range all {
		n += len(f.Description) + len(f.Default)
		for _, r := range f.Rules {
			n += len(r.Words) + len(r.Expression)
		}
		for _, e := range f.Enum {
			n += len(e)
		}
		for _, c := range f.Constraints {
			n += len(c)
		}
	}
	return n
}

// fieldURL returns the end of an address for the path of a field. Segments for items are "*".
func fieldURL(path string) string {
	var out strings.Builder
	for i, part := range strings.Split(path, ".") {
		items := 0
		for strings.HasSuffix(part, fields.AnyItem) {
			part, items = strings.TrimSuffix(part, fields.AnyItem), items+1
		}
		if i > 0 {
			out.WriteString("/" + segment(part))
		}
		out.WriteString(strings.Repeat("/*", items))
	}
	return out.String()
}
