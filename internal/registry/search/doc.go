// Package search finds candidates for a query in a database: an SQLite file with a full-text index. The database is disposable:
// a missing, damaged or outdated file is built again from the catalog. Beside the documents, it records when the server first saw each
// version, and the private packages with their histories, for a start at which a repository cannot be listed. A database that is built again has the times
// that authors state.
//
//	catalog ──Sync──▶ documents: one for each package, one for each kind
//	query ──Search──▶ at most 1,000 candidates in the order of their static rank ──▶ [catalog.Catalog.Search] ──▶ hits
//
// The row numbers of documents are in the order of the static rank, so a query for a frequent word reads only the beginning of its
// list. The final order is that of the search without a server.
package search
