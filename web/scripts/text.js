// Numbers, times and untrusted texts as they are shown.
"use strict";
var cadre = {};

// Returns a text without characters that are invisible or change the direction of writing: they are shown as codes.
cadre.printable = (text) =>
  String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}\ud800-\udfff]/gu,
    (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

// Returns a text on one line.
cadre.line = (text) => cadre.printable(text).replace(/[\n\t]+/g, " ");

// Returns the line of an error that says what happened: the first one that is not empty. If that introduces a traceback
// of Python's, returns what stands before it, and the line of the exception that was raised last (base/reason_line.h).
cadre.reasonLine = (error) => {
  const lines = error.split("\n");
  const title = "Traceback (most recent call last):";
  const begin = lines.findIndex((line) => line.trim());
  if (begin === -1) return "";
  if (!lines[begin].endsWith(title)) return lines[begin];
  let exception = "";
  let inFrames = true;
  for (const line of lines.slice(begin + 1)) {
    if (line === title) {
      inFrames = true;
    } else if (inFrames && line && !line.startsWith(" ")) {
      exception = line;
      inFrames = false;
    }
  }
  return exception ? lines[begin].slice(0, -title.length) + exception : lines[begin];
};

// Returns a number with at most so many significant digits.
cadre.number = (value, digits = 6) => {
  if (typeof value !== "number") return "";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  return String(Number(value.toPrecision(digits)));
};

// Returns an integer with thin spaces between groups of three digits.
cadre.count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");

cadre.plural = (count, one, many = one + "s") => `${cadre.count(count)} ${count === 1 ? one : many}`;

cadre.duration = (seconds) => {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
};

cadre.time = (seconds) => {
  if (!seconds) return "";
  const date = new Date(seconds * 1000);
  const two = (n) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}`;
};

// ---- Cells of the document: null, a number, a text, {"number": …} or {"json": …}

// Returns the number in a cell; NaN if it is none.
cadre.cellNumber = (cell) => {
  if (typeof cell === "number") return cell;
  if (cell !== null && typeof cell === "object" && "number" in cell) return Number(cell.number);
  return NaN;
};

cadre.isNumberCell = (cell) => typeof cell === "number" || (cell !== null && typeof cell === "object" && "number" in cell);

// Returns the different texts of cells that are not null, those of numbers last; none if all cells are numbers.
cadre.cellCategories = (cells) => {
  const textsOf = (isChosen) => [...new Set(cells.filter((cell) => cell !== null && isChosen(cell)).map(cadre.cellText))];
  const texts = textsOf((cell) => !cadre.isNumberCell(cell)).sort();
  return texts.length ? [...new Set([...texts, ...textsOf(cadre.isNumberCell)])] : [];
};

// Returns the whole content of a cell.
cadre.cellExact = (cell) => {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "object") return "json" in cell ? cell.json : cell.number;
  return String(cell);
};

// Returns what a person reads of a cell. An integer is exact: it may be a seed.
cadre.cellText = (cell) => {
  if (Number.isSafeInteger(cell)) return String(cell);
  if (typeof cell === "number") return cadre.number(cell);
  if (cadre.isNumberCell(cell)) {
    const number = Number(cell.number);
    return Number.isFinite(number) ? cell.number : cadre.number(number);
  }
  return cadre.line(cadre.cellExact(cell));
};
