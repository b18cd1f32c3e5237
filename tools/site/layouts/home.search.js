window.searchIndex = [
{{- range site.RegularPages }}
{{ $page := . }}
{{- dict "title" (partial "title.html" .) "url" (strings.TrimPrefix "/" .Path | printf "%s.html") "text" (.Plain | htmlUnescape) "headings" (partial "headings.html" .) | jsonify }},
{{- end }}
];
