//! `scribed cost`: shows what was spent, and on what.

use crate::cli::args::CostArgs;
use crate::cli::date_argument::parse_date;
use crate::cli::render::terminal::Table;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::protocol_mismatch;
use crate::config::model::Config;
use crate::control::status_lines::budget_line;
use crate::control::transport::protocol::{By, ControlAnswer, ControlRequest, CostLine, CostQuery, CostSum};
use crate::domain::names::ServiceName;
use crate::pipeline::budget::hours;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// Prints sums by source, day, month, service, template or job. The answer is read in pieces, so that memory use does
/// not grow with the number of jobs.
pub async fn run(context: &Context, args: &CostArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let mut query = CostQuery {
        by: args.by,
        timezone: config.zone.name().to_owned(),
        since: parse_date(config.zone, args.after.as_deref())?,
        before: parse_date(config.zone, args.before.as_deref())?,
        after: None,
    };
    let queue = context.queue(&config).await?;
    let mut list = List::new(context, &config, args)?;
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    loop {
        let ControlAnswer::Cost(piece) = queue.request(ControlRequest::Cost(query.clone())).await? else {
            return Err(protocol_mismatch());
        };
        for line in piece.lines {
            rows.entry(line.key.clone()).or_default().add_line(line, &config.prices);
        }
        // Jobs come in the order of their numbers, and no job is split between pieces: its line is complete.
        if args.by == By::Job {
            let mut finished: Vec<(String, Row)> = std::mem::take(&mut rows).into_iter().collect();
            finished.sort_by_key(|(id, _)| id.parse::<u64>().unwrap_or_default());
            finished.iter().try_for_each(|(key, row)| list.put(key, row))?;
        }
        query.after = piece.next;
        if query.after.is_none() {
            rows.iter().try_for_each(|(key, row)| list.put(key, row))?;
            list.end()?;
            if !args.csv {
                let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
                    return Err(protocol_mismatch());
                };
                status
                    .budget
                    .iter()
                    .try_for_each(|used| context.print_line(&budget_line(config.display_zone, used)))?;
            }
            return Ok(0);
        }
    }
}

/// One complete line of the output.
#[derive(Default)]
struct Row {
    sum: CostSum,
    /// The price by the configured prices.
    price: f64,
    /// Whether a part of the price is unknown: a service has no configured price, or a cost is unknown.
    unpriced: bool,
    /// For a line of one job: its source and path.
    job: Option<(String, String)>,
}

impl Row {
    fn add_line(&mut self, line: CostLine, prices: &BTreeMap<ServiceName, f64>) {
        match prices.get(&line.service) {
            Some(price) => self.price += line.sum.spent as f64 / 3.6e6 * price,
            None => self.unpriced |= line.sum.spent > 0,
        }
        self.unpriced |= line.sum.unknown > 0;
        self.sum.add(&line.sum);
        self.job = line.job.map(|key| (key.source.to_string(), key.path.lossy().into_owned()));
    }

    fn add(&mut self, other: &Self) {
        self.sum.add(&other.sum);
        self.price += other.price;
        self.unpriced |= other.unpriced;
    }

    /// Returns the price, rounded to four decimal places; `None` if a part of it is unknown.
    fn whole_price(&self) -> Option<f64> {
        (!self.unpriced).then(|| (self.price * 1e4).round() / 1e4)
    }
}

/// Writes the lines: as CSV, JSON or text.
struct List<'a> {
    context: &'a Context,
    by: By,
    table: Option<Box<Table>>,
    has_price: bool,
    lines: u64,
    total: Row,
}

impl<'a> List<'a> {
    fn new(context: &'a Context, config: &Config, args: &CostArgs) -> io::Result<Self> {
        let has_price = !config.prices.is_empty();
        let mut list = Self { context, by: args.by, table: None, has_price, lines: 0, total: Row::default() };
        if args.csv {
            let key_columns = if args.by == By::Job { vec!["job", "source", "path"] } else { vec![args.by.name()] };
            list.table = Some(Box::new(Table::new(key_columns.into_iter().chain(NUMBER_COLUMNS))?));
        }
        Ok(list)
    }

    fn put(&mut self, key: &str, row: &Row) -> io::Result<()> {
        self.total.add(row);
        self.lines += 1;
        if let Some(table) = &mut self.table {
            // The line of purchases that no job of the queue has is a line of no job.
            let of_job = (self.by == By::Job).then(|| row.job.clone().unwrap_or_default());
            let of_job = of_job.into_iter().flat_map(|(source, path)| [source, path]);
            let record = [key.to_owned()].into_iter().chain(of_job).chain(numbers(row));
            return table.row(record);
        }
        self.context.print_json(&object(self.by, key, row))?;
        if self.lines == 1 {
            self.context.print_line(&line(self.by.name(), ["spent", "reserved", "price"].map(str::to_owned), ""))?;
        }
        let name = row.job.as_ref().map_or_else(
            || key.to_owned(),
            |(source, path)| match path.starts_with('/') {
                true => format!("{key} {path} ({source})"),
                false => format!("{key} {source}/{path}"),
            },
        );
        self.context.print_line(&self.shown(&name, row))
    }

    fn shown(&self, name: &str, row: &Row) -> String {
        let price = match (self.has_price, row.whole_price()) {
            (false, _) => "-".to_owned(),
            (true, Some(price)) => format!("{price:.2}"),
            (true, None) => format!("{:.2} and more", row.price),
        };
        let CostSum { purchases, unknown, shared, excess, .. } = row.sum;
        let notes = [
            (purchases > 0).then(|| format!("{purchases} bought")),
            (shared > 0).then(|| format!("{shared} duplicate{} at no cost", if shared == 1 { "" } else { "s" })),
            (unknown > 0).then(|| format!("{unknown} of unknown cost")),
            (excess > 0).then(|| format!("{} billed beyond the reserved amount", hours(excess))),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        line(name, [hours(row.sum.spent), hours(row.sum.reserved), price], &notes.join(", "))
    }

    fn end(mut self) -> io::Result<()> {
        if let Some(table) = &mut self.table {
            return table.flush();
        }
        if self.lines == 0 {
            return self.context.print_line("nothing was bought");
        }
        self.context.print_line(&self.shown("total", &self.total))?;
        if self.total.sum.unknown > 0 {
            let words = "of unknown cost: the length is not known, or an older release did not record the cost";
            self.context.print_line(words)?;
        }
        Ok(())
    }
}

fn line(name: &str, [spent, reserved, price]: [String; 3], notes: &str) -> String {
    let line = format!("{name:<24}  {spent:>10}  {reserved:>10}  {price:>10}  {notes}");
    line.trim_end().to_owned()
}

const NUMBER_COLUMNS: [&str; 7] =
    ["bought", "spent_seconds", "reserved_seconds", "excess_seconds", "unknown", "shared", "price"];

fn numbers(row: &Row) -> [String; 7] {
    let CostSum { purchases, spent, reserved, unknown, shared, excess } = row.sum;
    let seconds = |millis: u64| format!("{}.{:03}", millis / 1000, millis % 1000);
    [
        purchases.to_string(),
        seconds(spent),
        seconds(reserved),
        seconds(excess),
        unknown.to_string(),
        shared.to_string(),
        row.whole_price().map(|price| price.to_string()).unwrap_or_default(),
    ]
}

fn object(by: By, key: &str, row: &Row) -> Value {
    let CostSum { purchases, spent, reserved, unknown, shared, excess } = row.sum;
    let seconds = |millis: u64| millis as f64 / 1e3;
    let mut object = json!({
        "bought": purchases, "spent_seconds": seconds(spent), "reserved_seconds": seconds(reserved),
        "excess_seconds": seconds(excess), "unknown": unknown, "shared": shared, "price": row.whole_price(),
    });
    object[by.name()] = key.into();
    if let Some((source, path)) = &row.job {
        object["job"] = key.parse::<u64>().map_or(Value::Null, Value::from);
        object["source"] = source.as_str().into();
        object["path"] = path.as_str().into();
    }
    object
}
