package web

import (
	"net/url"
	"slices"
	"strings"
)

// Functions that return the paths of pages. Templates use them too.

// segment escapes one segment of a path. Dots alone would change the path.
func segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return strings.ReplaceAll(url.PathEscape(s), "@", "%40")
}

// repositoryPath escapes the segments of a repository.
func repositoryPath(repository string) string {
	parts := strings.Split(repository, "/")
	for i := range parts {
		parts[i] = segment(parts[i])
	}
	return strings.Join(parts, "/")
}

// packageURL returns the path of a version of a package; of the newest one if the tag is empty. The repository ends at
// the "@" if it could be read as another package and a part of it.
func packageURL(repository, tag string) string {
	p := "/p/" + repositoryPath(repository)
	if tag != "" || splitPart(strings.Split(repository, "/")) > 0 {
		p += "@" + segment(tag)
	}
	return p
}

// partURL returns the path of a part of a version of a package, such as "kinds". No name of a repository contains "@".
func partURL(repository, tag, part string) string {
	return "/p/" + repositoryPath(repository) + "@" + segment(tag) + "/" + part
}

// packageParts are the parts of a package.
var packageParts = []string{"kinds", "versions", "dependencies", "graph", "graph.svg", "trust", "icon", "feed.atom"}

// kindPart is the part of a package that is followed by the group and the name of a kind.
const kindPart = "k"

// compositionPart is the part of a package that is followed by the name of a Composition. Its address always has a
// version.
const compositionPart = "compositions"

func compositionURL(repository, tag, name string) string {
	return partURL(repository, tag, compositionPart) + "/" + segment(name)
}

// splitPart returns the index of the segment with which the part of a package starts in a path without "@", such as
// "kinds"; zero if there is none.
func splitPart(path []string) int {
	if i := slices.Index(path, kindPart); i > 0 && len(path) > i+2 {
		return i
	}
	if last := len(path) - 1; last > 0 && slices.Contains(packageParts, path[last]) {
		return last
	}
	return 0
}

func kindURL(group, kind string) string { return "/k/" + segment(group) + "/" + segment(kind) }

// packageKindURL returns the path of a kind in a version of a package.
func packageKindURL(repository, tag, group, kind string) string {
	return partURL(repository, tag, kindPart) + "/" + segment(group) + "/" + segment(kind)
}

func groupURL(group string) string { return "/g/" + segment(group) }

func diffURL(repository, from, to string) string {
	return "/diff/" + repositoryPath(repository) + "/" + segment(from) + ".." + segment(to)
}

func schemaURL(group, kind, version string) string {
	return "/schemas/" + segment(group) + "/" + segment(strings.ToLower(kind)) + "_" + segment(version) + ".json"
}

func feedURL(repository string) string { return partURL(repository, "", "feed.atom") }

func searchURL(query string) string { return "/search?q=" + url.QueryEscape(query) }

// splitPath returns the segments of an escaped path, without escapes; false if it is malformed.
func splitPath(escaped string) ([]string, bool) {
	parts := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, p := range parts {
		s, err := url.PathUnescape(p)
		if err != nil || s == "" && i < len(parts)-1 {
			return nil, false
		}
		parts[i] = s
	}
	if len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts, true
}
