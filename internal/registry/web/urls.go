package web

import (
	"net/url"
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

func packageURL(repository, tag string) string {
	p := "/p/" + repositoryPath(repository)
	if tag != "" {
		p += "@" + segment(tag)
	}
	return p
}

// partURL returns the path of a part of a version of a package, such as "kinds".
func partURL(repository, tag, part string) string { return packageURL(repository, tag) + "/" + part }

func kindURL(group, kind string) string { return "/k/" + segment(group) + "/" + segment(kind) }

// packageKindURL returns the path of a kind in a version of a package.
func packageKindURL(repository, tag, group, kind string) string {
	return packageURL(repository, tag) + "/k/" + segment(group) + "/" + segment(kind)
}

func groupURL(group string) string { return "/g/" + segment(group) }

func diffURL(repository, from, to string) string {
	return "/diff/" + repositoryPath(repository) + "/" + segment(from) + ".." + segment(to)
}

func schemaURL(group, kind, version string) string {
	return "/schemas/" + segment(group) + "/" + segment(strings.ToLower(kind)) + "_" + segment(version) + ".json"
}

func feedURL(repository string) string { return "/p/" + repositoryPath(repository) + "/feed.atom" }

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
