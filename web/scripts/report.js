// The page of a report: shows the documents that stand in it.
"use strict";

cadre.start(cadre.documentsOfPage());
